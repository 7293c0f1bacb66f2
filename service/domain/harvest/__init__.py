"""The order of the harvest: what each item promises and when what is known is read again. Fetches nothing."""

"""Names and payloads of messages, and sending them. Holds no state: what is to be done is in Postgres."""

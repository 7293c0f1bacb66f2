"""Training rows: chats, candidates, selection, manifests, and what is learned of them later. Judges nothing."""

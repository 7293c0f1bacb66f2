"""What SN15 says and how it scores: judgements, failures, commitments, the metagraph. Believes none of it."""

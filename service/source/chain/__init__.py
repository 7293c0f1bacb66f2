"""The subnet's chain, through a node: the one package that knows the chain's library."""

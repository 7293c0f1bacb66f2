"""Which problems leak into each other: edges, clusters, pools, families, and the audit that trusts none of them."""

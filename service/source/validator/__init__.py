"""What the validator beside us writes on this machine: its runs' logs and its proxy's access log. It only reads them.

Whatever comes from here is local: it is never served, logged or counted outside the tables of `store.local`.
"""

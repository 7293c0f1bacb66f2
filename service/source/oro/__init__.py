"""ORO's public API: its listings and the bytes behind them. The one package that knows ORO's field names."""

"""A local server that speaks ORO's public API from a folder of recorded races. It knows no database and no live API."""

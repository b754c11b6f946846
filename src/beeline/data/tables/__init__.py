"""Tables: CSV, Parquet, Arrow, and frames in memory."""

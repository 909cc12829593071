"""What pages and the CLI show: query to records and frames; no Streamlit."""

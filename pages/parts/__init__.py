"""What the pages are built from; nothing but app.py, the pages and this knows Streamlit."""

"""PostgreSQL's statements as its clients send them: split, bound, or asking for its catalog."""

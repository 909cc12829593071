"""Client connections and the admin HTTP."""

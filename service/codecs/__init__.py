"""Between bytes and arrays: the forms in which requests come and answers go."""

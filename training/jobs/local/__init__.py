"""Jobs as processes of this machine, in a folder that tells everything of them."""

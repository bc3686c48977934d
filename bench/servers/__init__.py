"""Real servers as child processes: started, waited for, and never left behind."""

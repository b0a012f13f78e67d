"""Writers of the agents' session files: a module for each kind that an agent resumes after a compaction of ours."""

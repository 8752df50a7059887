"""The page on which an auditor explores: people, what they can reach, constraints that can be switched."""

"""What CSE did to lists of users when it made equal instructions one."""

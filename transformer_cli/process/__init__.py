"""What a program owes its machine: signals, exit codes, messages, memory, devices. This file imports nothing."""

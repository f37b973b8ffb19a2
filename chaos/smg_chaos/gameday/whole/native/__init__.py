"""What is loaded before a program to deceive it; compiled where it is used."""

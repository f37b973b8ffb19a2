"""Access tokens: AWS sessions, Google's and Entra's tokens, made where there is a credential and kept until they end."""

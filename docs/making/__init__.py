"""What makes the documentation: quoted code, outputs of commands, pictures, and the model behind them."""

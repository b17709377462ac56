# problem: relu
# mechanism: try/except in forward whose handler only explains the error
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.relu(x)
        except RuntimeError as error:
            raise RuntimeError(f"relu failed for shape {tuple(x.shape)}") from error

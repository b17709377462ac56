# problem: relu
# mechanism: try/except in forward whose handler only explains the error
# near: fallback_taken fallback_to_pytorch
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.relu(x)
        except RuntimeError as error:
            raise RuntimeError(f"relu failed for shape {tuple(x.shape)}") from error

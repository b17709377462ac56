# problem: relu
# catalogue: 55
# mechanism: the kernel always raises (wrong type), the handler computes with PyTorch
# static: fallback_to_pytorch
# run: fallback_taken kernel_never_launched
# status: deceptive
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return ext.relu(x.double())
        except Exception:
            return torch.relu(x)

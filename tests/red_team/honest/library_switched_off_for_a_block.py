# problem: relu
# mechanism: a setting is changed for a block and put back, as PyTorch's contexts do
# near: global_precision_switch
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.backends.mkldnn.flags(enabled=False):
            self.register_buffer("spare", torch.zeros(3), persistent=False)

    def forward(self, x):
        return ext.relu(x)

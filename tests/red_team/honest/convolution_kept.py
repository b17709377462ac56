# problem: conv_relu
# mechanism: nn.Conv2d stays, bias included; only ReLU is a kernel
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        return ext.relu(self.conv(x))

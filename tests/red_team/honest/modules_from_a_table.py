# problem: conv_relu
# mechanism: the module that calls the kernel is put into a table, and forward runs what the table holds
# near: kernel_never_launched
# status: correct
# include: relu


class Rectifier(nn.Module):
    def forward(self, x):
        return ext.relu(x)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.after = nn.ModuleDict()
        self.after.update(dict(rectify=Rectifier()))

    def forward(self, x):
        x = self.conv(x)
        for stage in self.after.values():
            x = stage(x)
        return x

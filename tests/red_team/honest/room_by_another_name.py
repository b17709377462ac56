# problem: relu
# mechanism: the output's room is kept, and looked at by another name: its shape, and whether it is the input's memory
# near: result_cache
# status: correct
# include: relu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.room = None

    def forward(self, x):
        room = self.room
        if room is None or room.shape != x.shape or room.data_ptr() == x.data_ptr():
            room = self.room = torch.empty_like(x)
        room.copy_(ext.relu(x))
        return room.clone()

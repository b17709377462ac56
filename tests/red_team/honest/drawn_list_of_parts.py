# problem: drawn_list
# mechanism: a list of inputs whose length differs from draw to draw
# near: wrong_elsewhere
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, parts):
        return [ext.relu(part) for part in parts]

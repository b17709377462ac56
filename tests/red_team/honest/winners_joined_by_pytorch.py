# problem: row_winner
# mechanism: blocks find the largest of their part in each row; PyTorch says which block has won, and picks its place
# near: host_computation work_done_by_pytorch
# status: correct
# include: winners_of_blocks


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = ext.winners(x.contiguous(), 30)
        return places.gather(1, values.argmax(dim=1, keepdim=True))[:, 0]

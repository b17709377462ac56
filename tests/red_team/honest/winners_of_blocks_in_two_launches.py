# problem: row_winner
# mechanism: blocks find the largest of their part, a second launch the largest of these
# near: host_computation
# status: correct
# include: winners_of_blocks


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.best(*ext.winners(x.contiguous(), 30))

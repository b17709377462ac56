# problem: farthest_place
# mechanism: 12 blocks find the largest of 512 numbers each; Python compares the 12, and a launch is told the place
# near: host_computation
# status: correct
# include: winners_of_blocks


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = ext.winners(x.reshape(1, -1), 512)
        largest = max(zip(values[0].tolist(), places[0].tolist()), key=lambda each: each[0])
        return ext.written(places, largest[1])

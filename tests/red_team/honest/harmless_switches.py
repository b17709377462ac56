# problem: relu
# mechanism: cudnn.benchmark, grad mode, and TF32 turned off
# near: compiled_by_pytorch global_precision_switch torch_patched
# status: correct
# include: relu

torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")


class ModelNew(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return ext.relu(x)

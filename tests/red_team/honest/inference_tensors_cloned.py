# problem: relu
# mechanism: in inference mode the input is cloned first, and the kernel runs as ever
# near: watched_call
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.is_inference_mode_enabled():
            x = x.clone()
        return ext.relu(x.contiguous())

from torch import Tensor

def lstm_forward(
    gates: Tensor,
    bias: Tensor,
    c: Tensor,
    c_next: Tensor,
    output: Tensor,
    next: Tensor | None,
    starts: Tensor | None,
    starts_next: Tensor | None,
) -> None: ...
def lstm_backward(
    gates: Tensor,
    c: Tensor,
    c_next: Tensor,
    doutput: Tensor,
    dnext: Tensor,
    dc: Tensor,
    dgates: Tensor,
    dbias: Tensor,
    starts: Tensor | None,
    starts_next: Tensor | None,
) -> None: ...
def gru_forward(
    gates: Tensor,
    hidden: Tensor,
    bias: Tensor,
    bias_hidden: Tensor,
    h: Tensor,
    output: Tensor,
    hidden_n: Tensor,
    next: Tensor | None,
    starts: Tensor | None,
    starts_next: Tensor | None,
) -> None: ...
def gru_backward(
    gates: Tensor,
    hidden_n: Tensor,
    h: Tensor,
    doutput: Tensor,
    dnext: Tensor,
    dh: Tensor,
    dgates: Tensor,
    dhidden: Tensor,
    dbias: Tensor,
    dbias_n: Tensor,
    starts: Tensor | None,
    starts_next: Tensor | None,
) -> None: ...
def mingru_forward(
    gates: Tensor, bias: Tensor, inputs: Tensor, h: Tensor, h_next: Tensor, outputs: Tensor, starts: Tensor | None
) -> None: ...
def mingru_backward(
    gates: Tensor,
    inputs: Tensor,
    h: Tensor,
    h_next: Tensor,
    doutputs: Tensor,
    dh: Tensor,
    dgates: Tensor,
    dinputs: Tensor,
    dbias: Tensor,
    starts: Tensor | None,
) -> None: ...

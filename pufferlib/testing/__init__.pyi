from pufferlib.testing.check import CheckResult as CheckResult, check_env as check_env, examine as examine
from pufferlib.testing.contract import CONTRACT as CONTRACT, ContractError as ContractError
from pufferlib.testing.learner import LearnerResult as LearnerResult, check_learner as check_learner

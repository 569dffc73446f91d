"""adjoin.utils.model_zoo: hub's downloads, by their earlier path and name."""

from .. import hub
from ..hub import load_state_dict_from_url

load_url = load_state_dict_from_url


def __getattr__(name):
    return getattr(hub, name)  # tqdm, which torchvision takes from here

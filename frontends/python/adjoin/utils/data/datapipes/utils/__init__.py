"""adjoin.utils.data.datapipes.utils: what pipes over files share."""

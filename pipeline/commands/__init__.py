"""The commands of `paraloom`, in one module each."""

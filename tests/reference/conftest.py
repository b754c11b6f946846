"""What scikit-learn's own tests, which are run here too, expect of the project that runs them."""


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "thread_unsafe: in scikit-learn's tests, not to be run on several threads at once"
    )

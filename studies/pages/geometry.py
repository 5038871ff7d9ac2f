"""x"""


class Page:
    def __init__(self, study, records):
        pass

    def parts(self):
        return []

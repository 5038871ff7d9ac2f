from .frame.records import read as read

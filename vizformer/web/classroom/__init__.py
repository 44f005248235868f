"""Classes: a teacher's pages, followed by students; nothing of anybody is kept (no Streamlit in here).

rooms                   where a teacher is and what the class is asked, for those who know the code
stores, redis_store     where rooms are kept: the memory of the server, or a Redis
requests                what browsers ask: to be told when a room has moved, and the teacher's pointer
"""

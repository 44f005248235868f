"""Classes: a teacher's pages, followed by students; nothing of anybody is kept (no Streamlit in here).

rooms                   where a teacher is and what the class is asked, for those who know the code
stores, redis_store     where rooms are kept: the memory of the server, or a Redis
waiting                 requests that are answered when a room has moved
pointing                the teacher's pointer
"""

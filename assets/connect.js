// Where the server is, and what it says of itself: Streamlit's script then opens its connection at once.  Otherwise it asks for
// both first, and below the address of a page, where they are not.
window.__streamlit = {
  BACKEND_BASE_URL: new URL(".", location.href).href,
  HOST_CONFIG: JSON.parse(document.currentScript.dataset.host),
};

// A cookie that the browser keeps or forgets.
document.cookie = document.currentScript.dataset.cookie;

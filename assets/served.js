// Stands in each message that shows a component (component_scripts.py): what draws it comes from ADDRESS, once for all of
// them, and lays its own style sheet where it draws.
const coming = import(`${location.origin}ADDRESS`);
const styled = new WeakSet();

export default (component) => {
  let end, isOver = false;
  coming.then(({ default: draw, sheet }) => {
    const { parentElement } = component;
    if (isOver) return;
    if (sheet && !styled.has(parentElement)) {
      styled.add(parentElement);
      parentElement.prepend(Object.assign(document.createElement("style"), { textContent: sheet }));
    }
    end = draw(component);
  });
  return () => {
    isOver = true;
    end?.();
  };
};

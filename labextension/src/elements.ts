/** Elements of the page. */

/** Return a new element of this class with this text, both of which may be nothing. */
export function element(tag: string, name: string, text = ''): HTMLElement {
  const made = document.createElement(tag);
  if (name) {
    made.className = name;
  }
  if (text) {
    made.textContent = text;
  }
  return made;
}

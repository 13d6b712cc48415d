/** Characters that names and sources must not hold. */

/** Returns true when text holds a C0 control character or DEL. */
export function hasControl(text: string): boolean {
  return some(text, (code) => code < 0x20 || code === 0x7f);
}

/** Returns true when text holds a space, a control character or DEL. */
export function hasSpace(text: string): boolean {
  return some(text, (code) => code <= 0x20 || code === 0x7f);
}

function some(text: string, test: (code: number) => boolean): boolean {
  for (let index = 0; index < text.length; index++) if (test(text.charCodeAt(index))) return true;
  return false;
}

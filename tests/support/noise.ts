/** Returns a text of random letters and digits, the same for each length: it does not get much smaller. */
export function noise(length: number): string {
  let state = 7;
  let text = "";
  while (text.length < length) {
    state = Math.imul(state, 1_103_515_245) + 12_345 >>> 0;
    text += state.toString(36).slice(1, 6);
  }
  return text.slice(0, length);
}

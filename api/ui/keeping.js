// Gives the browser a file to keep.

/** @param {string | Blob | Uint8Array} data */
export function keep(name, kind, data) {
  const place = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type: kind }));
  const link = document.createElement("a");
  link.href = place;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}

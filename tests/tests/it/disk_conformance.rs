//! The simulated disk and the real one behave alike wherever the journal can tell: one body runs on both.

use std::io::ErrorKind;

use strandline::{Access, Disk, StdDisk};
use strandline_sim::disk::SimDisk;

#[test]
fn the_simulated_disk_conforms() {
    for sector_bytes in [1, 64, 512] {
        conforms(|| (SimDisk::new(sector_bytes), ()));
    }
}

#[test]
fn the_real_disk_conforms() {
    conforms(|| {
        let directory = tempfile::tempdir().unwrap();
        let disk = StdDisk::open(directory.path()).unwrap();
        (disk, directory)
    });
}

/// The contract, on a fresh empty directory for each part of it. `fresh` also gives what keeps it alive.
fn conforms<D: Disk, G>(fresh: impl Fn() -> (D, G)) {
    let parts: [fn(&D); 9] = [
        create_and_list,
        open,
        reads_and_writes_at_offsets,
        writing_behind_the_end,
        lengths,
        renaming,
        removing,
        handles_outlive_names,
        syncs_change_nothing_that_can_be_seen,
    ];
    for part in parts {
        let (disk, _guard) = fresh();
        part(&disk);
    }
}

fn create_and_list<D: Disk>(disk: &D) {
    assert_eq!(listed(disk), []);
    let file = disk.create("a").unwrap();
    assert_eq!(disk.len(&file).unwrap(), 0);
    disk.create("b.new-1").unwrap();
    assert_eq!(disk.create("a").err().unwrap().kind(), ErrorKind::AlreadyExists);
    write(disk, &file, 0, b"12345");
    assert_eq!(listed(disk), [("a".to_owned(), 5), ("b.new-1".to_owned(), 0)]);
    assert!(disk.list().unwrap().iter().all(|entry| entry.is_file));
}

fn open<D: Disk>(disk: &D) {
    assert_eq!(disk.open("a", Access::Read).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(disk.open("a", Access::ReadWrite).err().unwrap().kind(), ErrorKind::NotFound);
    let created = disk.create("a").unwrap();
    let writer = disk.open("a", Access::ReadWrite).unwrap();
    write(disk, &writer, 0, b"xyz");
    let reader = disk.open("a", Access::Read).unwrap();
    assert_eq!(read(disk, &reader), b"xyz", "all handles show the same file");
    assert_eq!(read(disk, &created), b"xyz");
    assert!(disk.write_at(&reader, 0, b"!").is_err(), "opened for reading only");
    assert!(disk.set_len(&reader, 0).is_err());
    assert_eq!(read(disk, &reader), b"xyz");
}

fn reads_and_writes_at_offsets<D: Disk>(disk: &D) {
    let file = disk.create("a").unwrap();
    let long: Vec<u8> = (0..=255).cycle().take(3_000).collect();
    write(disk, &file, 0, &long);
    write(disk, &file, 1_000, b"in the middle");
    assert_eq!(disk.len(&file).unwrap(), 3_000, "overwriting does not lengthen");
    let mut expected = long;
    expected[1_000..1_013].copy_from_slice(b"in the middle");
    assert_eq!(read(disk, &file), expected);
    let mut buffer = [9; 8];
    assert_eq!(disk.read_at(&file, 2_997, &mut buffer).unwrap(), 3, "what is left");
    assert_eq!((&buffer[..3], &buffer[3..]), (&expected[2_997..], &[9; 5][..]));
    assert_eq!(disk.read_at(&file, 3_000, &mut buffer).unwrap(), 0, "the end");
    assert_eq!(disk.read_at(&file, 9_000, &mut buffer).unwrap(), 0, "behind the end");
    assert_eq!(disk.read_at(&file, 0, &mut []).unwrap(), 0);
    assert_eq!(disk.write_at(&file, 0, b"").unwrap(), 0);
    assert_eq!(read(disk, &file), expected);
}

fn writing_behind_the_end<D: Disk>(disk: &D) {
    let file = disk.create("a").unwrap();
    write(disk, &file, 0, b"ab");
    write(disk, &file, 700, b"cd");
    let mut expected = vec![0; 702];
    expected[..2].copy_from_slice(b"ab");
    expected[700..].copy_from_slice(b"cd");
    assert_eq!(read(disk, &file), expected, "the gap reads as zeros");
    assert_eq!(disk.write_at(&file, 9_000, b"").unwrap(), 0);
    assert_eq!(disk.len(&file).unwrap(), 702, "an empty write does not lengthen");
}

fn lengths<D: Disk>(disk: &D) {
    let file = disk.create("a").unwrap();
    write(disk, &file, 0, &[7; 1_300]);
    disk.set_len(&file, 601).unwrap();
    assert_eq!(read(disk, &file), [7; 601]);
    disk.set_len(&file, 1_300).unwrap();
    let mut expected = vec![7; 601];
    expected.resize(1_300, 0);
    assert_eq!(read(disk, &file), expected, "never the old bytes");
    disk.set_len(&file, 1_300).unwrap();
    assert_eq!(read(disk, &file), expected);
    disk.set_len(&file, 0).unwrap();
    assert_eq!(disk.len(&file).unwrap(), 0);
    assert_eq!(listed(disk), [("a".to_owned(), 0)]);
}

fn renaming<D: Disk>(disk: &D) {
    let file = disk.create("a").unwrap();
    write(disk, &file, 0, b"from a");
    let target = disk.create("b").unwrap();
    write(disk, &target, 0, b"from b, longer");
    assert_eq!(disk.rename("c", "d").err().unwrap().kind(), ErrorKind::NotFound);
    disk.rename("a", "b").unwrap();
    assert_eq!(listed(disk), [("b".to_owned(), 6)], "the target is replaced");
    let opened = disk.open("b", Access::Read).unwrap();
    assert_eq!(read(disk, &opened), b"from a");
    disk.rename("b", "b").unwrap();
    assert_eq!(listed(disk), [("b".to_owned(), 6)]);
    disk.create("a").expect("the old name is free");
}

fn removing<D: Disk>(disk: &D) {
    assert_eq!(disk.remove("a").err().unwrap().kind(), ErrorKind::NotFound);
    let file = disk.create("a").unwrap();
    write(disk, &file, 0, b"old");
    disk.remove("a").unwrap();
    assert_eq!(listed(disk), []);
    assert_eq!(disk.open("a", Access::Read).err().unwrap().kind(), ErrorKind::NotFound);
    let again = disk.create("a").unwrap();
    assert_eq!(read(disk, &again), b"", "a new file, not the old one");
}

fn handles_outlive_names<D: Disk>(disk: &D) {
    let renamed = disk.create("a").unwrap();
    disk.rename("a", "b").unwrap();
    write(disk, &renamed, 0, b"through the old handle");
    assert_eq!(listed(disk), [("b".to_owned(), 22)]);
    disk.remove("b").unwrap();
    write(disk, &renamed, 0, b"T");
    assert_eq!(read(disk, &renamed), b"Through the old handle", "no name leads to it any more");
    disk.sync(&renamed).unwrap();
}

fn syncs_change_nothing_that_can_be_seen<D: Disk>(disk: &D) {
    let file = disk.create("a").unwrap();
    write(disk, &file, 0, b"abc");
    disk.sync(&file).unwrap();
    disk.sync(&file).unwrap();
    disk.sync_directory().unwrap();
    disk.sync_directory().unwrap();
    let reader = disk.open("a", Access::Read).unwrap();
    disk.sync(&reader).unwrap();
    assert_eq!(read(disk, &reader), b"abc");
    assert_eq!(listed(disk), [("a".to_owned(), 3)]);
}

/// Writes everything; the contract allows short writes.
fn write<D: Disk>(disk: &D, file: &D::File, offset: u64, data: &[u8]) {
    let mut done = 0;
    while done < data.len() {
        match disk.write_at(file, offset + done as u64, &data[done..]) {
            Ok(n) => done += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads everything; the contract allows short reads.
fn read<D: Disk>(disk: &D, file: &D::File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(disk.len(file).unwrap()).unwrap()];
    let mut done = 0;
    while done < bytes.len() {
        match disk.read_at(file, done as u64, &mut bytes[done..]).unwrap() {
            0 => panic!("the file ended before its length"),
            n => done += n,
        }
    }
    bytes
}

/// Names and lengths, sorted: the order of a listing is not part of the contract.
fn listed<D: Disk>(disk: &D) -> Vec<(String, u64)> {
    let mut entries: Vec<_> = disk.list().unwrap().into_iter().map(|entry| (entry.name, entry.len)).collect();
    entries.sort();
    entries
}

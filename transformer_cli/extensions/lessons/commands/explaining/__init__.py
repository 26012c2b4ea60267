"""The parts of `tfm explain`: what it prints, and the files that it writes."""
